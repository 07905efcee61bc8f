module github.com/dunlinhttp/dunlin/acme

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../

require github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000

require (
	golang.org/x/crypto v0.58.0
	golang.org/x/sys v0.49.0 // indirect
)
