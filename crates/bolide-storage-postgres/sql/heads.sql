-- $1 first key of the list of the home's partitions, $2 end. The newest commit record of each partition.
select 0, h.k, h.v from bolide_kv p, lateral (
  select k, v from bolide_kv c
  where c.part = {part} and c.k >= substring(p.k from 6 for 4) || '\x00'::bytea and c.k < substring(p.k from 6 for 4) || '\x01'::bytea
  order by k desc limit 1
) h where p.part = {part} and p.k >= $1 and p.k < $2 order by p.k
