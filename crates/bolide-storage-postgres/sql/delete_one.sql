-- $1 key and $2 value of the new commit record: nothing is deleted without it. $3 key
delete from bolide_kv using bolide_kv c
where c.part = {part} and c.k = $1 and c.v = $2 and bolide_kv.part = {part} and bolide_kv.k = $3
