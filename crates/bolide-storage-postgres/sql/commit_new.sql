-- As commit.sql, for entries some of which are new: $6 their keys and $7 their values, which are not in $1 and $2. An error (23505) if one of them is there.
-- To insert a row that may be there takes PostgreSQL longer, and a second record in its log. Citus carries out each part on its own, so it gets commit.sql.
-- Both parts see and lock the same newest record, so both write or none does.
with entries as (
  insert into bolide_kv (part, k, v)
  select c.part, t.k, t.v from bolide_kv c, unnest($6::bytea[], $7::bytea[]) t(k, v)
  where c.part = {part} and c.k = $3 and c.v = $4 for share of c
)
insert into bolide_kv (part, k, v)
select c.part, t.k, t.v from bolide_kv c, unnest($1::bytea[], $2::bytea[]) t(k, v)
where c.part = {part} and c.k = $3 and c.v = $4 for share of c
on conflict (part, k) do update set v = case when bolide_kv.k = $5 then null else excluded.v end
