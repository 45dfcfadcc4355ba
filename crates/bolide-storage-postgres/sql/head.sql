-- $1 first key of the partition's commit records, $2 end of them
select 0, k, v from bolide_kv where part = {part} and k >= $1 and k < $2 order by k desc limit 1
