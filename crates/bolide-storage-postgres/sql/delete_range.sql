-- $1 first key, $2 end, $3 maximum number of rows
delete from bolide_kv where part = {part} and k in (
  select k from bolide_kv where part = {part} and k >= $1 and k < $2 order by k limit $3
)
