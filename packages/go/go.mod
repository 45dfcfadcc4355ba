module github.com/bolide-db/bolide-go

go 1.21
