-- $1 keys and $2 values: the first commit record, and the entry in the list of the home's partitions
insert into bolide_kv (part, k, v) select {part}, t.k, t.v from unnest($1::bytea[], $2::bytea[]) t(k, v) on conflict do nothing
