-- $1 keys, each once, $2 limit on the bytes before a row, $3 and $4 as in head.sql. The rows of the keys in the order of the keys, and the head.
-- Key by key, as in get_all.sql.
select 1, k, v from (
  select found.k, found.v, sum(octet_length(found.k) - 5 + octet_length(found.v))
    over (order by array_position($1::bytea[], found.k) rows between unbounded preceding and 1 preceding) as before
  from unnest($1::bytea[]) wanted(k) cross join lateral (
    select k, v from bolide_kv where part = {part} and bolide_kv.k = wanted.k limit 1
  ) found
) found where coalesce(before, 0) < $2::bigint
union all
(select 0, k, v from bolide_kv where part = {part} and k >= $3 and k < $4 order by k desc limit 1)
