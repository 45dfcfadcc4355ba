-- $1 first key, $2 end
select 0, k, v from bolide_kv where part = {part} and k >= $1 and k < $2 order by k
