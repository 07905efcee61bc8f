module github.com/dunlinhttp/dunlin/store/redis

go 1.26.0

replace github.com/dunlinhttp/dunlin => ../../

require (
	github.com/dunlinhttp/dunlin v0.0.0-00010101000000-000000000000
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.49.0 // indirect
