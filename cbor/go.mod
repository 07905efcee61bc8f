module github.com/dunlinhttp/dunlin/cbor

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../

require (
	github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000
	github.com/fxamacker/cbor/v2 v2.10.0
)

require (
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
