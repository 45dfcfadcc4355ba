-- $1 key, $2 value
insert into bolide_kv (part, k, v) values ({part}, $1, $2) on conflict (part, k) do update set v = excluded.v
