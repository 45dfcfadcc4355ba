-- $1 keys, $2 limit on the bytes before a row, $3 and $4 as in head.sql. The rows of the keys in the order of the keys, and the head.
select 1, k, v from (
  select k, v, sum(octet_length(k) - 5 + octet_length(v))
    over (order by array_position($1::bytea[], k) rows between unbounded preceding and 1 preceding) as before
  from bolide_kv where part = {part} and k = any($1::bytea[])
) found where coalesce(before, 0) < $2::bigint
union all
(select 0, k, v from bolide_kv where part = {part} and k >= $3 and k < $4 order by k desc limit 1)
