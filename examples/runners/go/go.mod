module example.org/acme/shop

go 1.20
