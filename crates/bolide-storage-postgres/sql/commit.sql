-- $1 keys and $2 values, those of the new commit record first; $3 key and $4 value of the newest commit record; $5 key of the new one; $6 keys that are new, too.
-- All rows are written, or none: no rows if the newest record is another one, an error (23502) if another commit follows it,
-- or if a key that is new is there.
-- The lock makes a writer that stalled look at the newest record again: it may have been fenced, followed and deleted meanwhile.
insert into bolide_kv (part, k, v)
select c.part, t.k, t.v from bolide_kv c, unnest($1::bytea[], $2::bytea[]) t(k, v)
where c.part = {part} and c.k = $3 and c.v = $4 for share of c
on conflict (part, k) do update set v = case when bolide_kv.k = $5 or bolide_kv.k = any($6::bytea[]) then null else excluded.v end
