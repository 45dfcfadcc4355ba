-- $1 key and $2 value of the newest commit record, $3 its new value: a commit that was decided on the old value can no longer happen.
update bolide_kv set v = $3 where part = {part} and k = $1 and v = $2
