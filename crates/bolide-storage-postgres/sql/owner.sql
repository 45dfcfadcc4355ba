-- The node of Citus that has the home.
select n.nodename, n.nodeport from pg_dist_placement p join pg_dist_node n using (groupid)
where n.noderole = 'primary' and p.shardid = get_shard_id_for_distribution_column('bolide_kv', {part})
