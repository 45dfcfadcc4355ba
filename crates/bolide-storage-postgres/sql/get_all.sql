-- $1 keys, each once, $2 and $3 as in head.sql. The rows of the keys in any order, and the head.
-- Key by key: a plan for `k = any($1)` that was made when the partition had a few rows, as far as the server knew, reads all rows of the partition.
select 1, found.k, found.v from unnest($1::bytea[]) wanted(k) cross join lateral (
  select k, v from bolide_kv where part = {part} and bolide_kv.k = wanted.k limit 1
) found
union all
(select 0, k, v from bolide_kv where part = {part} and k >= $2 and k < $3 order by k desc limit 1)
