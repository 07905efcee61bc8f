module github.com/dunlinhttp/dunlin/auth

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../

require (
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000
	github.com/golang-jwt/jwt/v5 v5.3.1
	golang.org/x/oauth2 v0.37.0
)

require (
	github.com/go-jose/go-jose/v4 v4.1.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
