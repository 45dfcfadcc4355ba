-- $1 key
select 0, k, v from bolide_kv where part = {part} and k = $1
