-- As commit.sql, for several partitions: $3 keys and $4 values of their newest commit records, $5 keys of the new ones.
-- The first of the records is named once more, because Citus sends the statement to the shard of a row that is selected from.
insert into bolide_kv (part, k, v)
select a.part, t.k, t.v from bolide_kv a, unnest($1::bytea[], $2::bytea[]) t(k, v)
where a.part = {part} and a.k = ($3::bytea[])[1] and (
  select count(*) from (
    select 1 from unnest($3::bytea[], $4::bytea[]) e(k, v) cross join lateral (
      select 1 from bolide_kv c where c.part = {part} and c.k = e.k and c.v = e.v for share
    ) record
  ) locked
) = cardinality($3::bytea[])
on conflict (part, k) do update set v = case when bolide_kv.k = any($5::bytea[]) then null else excluded.v end
