module github.com/dunlinhttp/dunlin/bench

go 1.26

replace github.com/dunlinhttp/dunlin => ../
