module github.com/dunlinhttp/dunlin/auth

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../

require (
	github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000
	github.com/golang-jwt/jwt/v5 v5.3.1
)

require golang.org/x/sys v0.49.0 // indirect
