-- $1 first commit record to delete, $2 first to keep
delete from bolide_kv where part = {part} and k >= $1 and k < $2
