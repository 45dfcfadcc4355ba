// Answers { count, errorCode }: how many of the documents were written before the script's time was up, or before a conflict at which it
// was to stop.
function (documents, options) {
  const collection = getContext().getCollection();
  const { disableAutomaticIdGeneration, softStopOnConflict, enableUpsert } = options ?? {};
  if (!Array.isArray(documents)) throw new Error(400, 'The first argument must be an array of documents.');
  const write = enableUpsert === true ? collection.upsertDocument : collection.createDocument;
  let count = 0;
  const done = (errorCode) => getContext().getResponse().setBody({ count, errorCode });
  const next = () => {
    if (count === documents.length) return done(0);
    const options = { disableAutomaticIdGeneration: disableAutomaticIdGeneration === true };
    const isAccepted = write(collection.getSelfLink(), documents[count], options, (error) => {
      if (error === undefined) {
        count++;
        return next();
      }
      if (error.number !== 409 || softStopOnConflict !== true) throw error;
      done(409);
    });
    if (!isAccepted) done(0);
  };
  next();
}
