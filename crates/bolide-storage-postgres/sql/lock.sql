-- $1 key of the record that the partition was created with. Of those that write the partition at the same time, each waits here until it is its turn.
select 0 from bolide_kv where part = {part} and k = $1 for no key update
