module github.com/dunlinhttp/dunlin/bench/peers/fib

go 1.27.3

toolchain go1.27.4

replace (
	github.com/dunlinhttp/dunlin => ../../../
	github.com/dunlinhttp/dunlin/bench => ../../
)

require (
	github.com/dunlinhttp/dunlin/bench v0.0.0-00010101000000-000000000000
	github.com/lesismal/fib v1.7.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/pgx/v5 v5.12.0 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
