module github.com/dunlinhttp/dunlin/compress

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../

require (
	github.com/andybalholm/brotli v1.2.8
	github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000
	github.com/klauspost/compress v1.20.3
)

require golang.org/x/sys v0.49.0 // indirect
