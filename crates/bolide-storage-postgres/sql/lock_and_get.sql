-- As get_all.sql, and the newest commit record is locked: no commit follows it until the transaction ends, except in the same transaction.
with newest as materialized (
  select k, v from bolide_kv where part = {part} and k >= $2 and k < $3 order by k desc limit 1 for no key update
)
select 1, found.k, found.v from unnest($1::bytea[]) wanted(k) cross join lateral (
  select k, v from bolide_kv where part = {part} and bolide_kv.k = wanted.k limit 1
) found
union all
select 0, k, v from newest
