module github.com/dunlinhttp/dunlin/examples/shop

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../../

require (
	github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000
	modernc.org/sqlite v1.38.0
)

require github.com/redis/rueidis v1.0.79 // indirect

require (
	github.com/dunlinhttp/dunlin/store/redis v0.0.0-00010101000000-000000000000
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/ncruces/go-strftime v0.1.9 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	golang.org/x/exp v0.0.0-20250408133849-7e4ce0ab07d0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	modernc.org/libc v1.65.10 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.11.0 // indirect
)

replace github.com/dunlinhttp/dunlin/store/redis => ../../store/redis
