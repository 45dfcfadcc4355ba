mod sources;
