-- $1 key, $2 value: keeps the higher one
insert into bolide_kv (part, k, v) values ({part}, $1, $2)
on conflict (part, k) do update set v = greatest(bolide_kv.v, excluded.v)
