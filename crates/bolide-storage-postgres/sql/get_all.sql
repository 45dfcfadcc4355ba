-- $1 keys, $2 and $3 as in head.sql. The rows of the keys in any order, and the head.
select 1, k, v from bolide_kv where part = {part} and k = any($1::bytea[])
union all
(select 0, k, v from bolide_kv where part = {part} and k >= $2 and k < $3 order by k desc limit 1)
