//! The table of operations.

/// Passes the table to a macro. A row is
///
/// ```text
/// name {verb place when | key container key item script | about body} => how handler;
/// ```
///
/// - A request is the first operation that matches its verb, path and headers (`when`, see [`super::When`]): if one header takes precedence over
///   another, its row comes first.
/// - The second part is the rights: the required account key, and the required mode of a token for a container, a partition key, an item, a script.
/// - The third part is the subject ([`super::Subject`]) and the kind of body ([`super::Body`]).
/// - The handler is in `operations`. It returns `now`, or `later` as a future, or runs `inside` a container: then it is wrapped in the checks and
///   headers that operations on items share.
///   operations on items have in common stand around it.
#[rustfmt::skip]
macro_rules! operations {
    ($to:ident) => {
        $to! {
            // Every client begins with this operation, `ReadContainer` and `ListPartitionKeyRanges`.
            ReadAccount            {Get    Account                 Always    | ReadOnly READ READ READ READ | Other Content}    => now    account_root::read;

            QueryDatabases         {Post   Databases               Query     | ReadOnly NONE NONE NONE NONE | Other Content}    => later  databases::query;
            CreateDatabase         {Post   Databases               Always    | Full     NONE NONE NONE NONE | Other Definition} => later  databases::create;
            ListDatabases          {Get    Databases               Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => later  databases::list;
            ReadDatabase           {Get    Database                Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => now    databases::read;
            DeleteDatabase         {Delete Database                Always    | Full     NONE NONE NONE NONE | Other Content}    => later  databases::delete;

            QueryContainers        {Post   Containers              Query     | ReadOnly NONE NONE NONE NONE | Other Content}    => later  containers::query;
            CreateContainer        {Post   Containers              Always    | Full     NONE NONE NONE NONE | Other Definition} => later  containers::create;
            ListContainers         {Get    Containers              Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => later  containers::list;
            ReadContainer          {Get    Container               Always    | ReadOnly READ READ READ READ | Other Content}    => later  containers::read;
            ReplaceContainer       {Put    Container               Always    | Full     NONE NONE NONE NONE | Other Definition} => later  containers::replace;
            DeleteContainer        {Delete Container               Always    | Full     NONE NONE NONE NONE | Other Content}    => later  containers::delete;

            // The operation of a POST to items is decided in the order of cosmos-rest §0.2.
            Batch                  {Post   Items                   Batch     | Full     ALL  ALL  NONE NONE | Items Growing}    => inside batch::run;
            // A plan discloses nothing about the container's content, so it needs no partition key.
            QueryPlan              {Post   Items                   QueryPlan | ReadOnly READ READ NONE NONE | Other Content}    => inside query::plan;
            QueryItems             {Post   Items                   Query     | ReadOnly READ READ NONE NONE | Items Content}    => inside query::run;
            UpsertItem             {Post   Items                   Upsert    | Full     ALL  ALL  NONE NONE | Items Content}    => inside items::upsert;
            CreateItem             {Post   Items                   Always    | Full     ALL  ALL  NONE NONE | Items Content}    => inside items::create;
            ReadChanges            {Get    Items                   Changes   | ReadOnly READ READ NONE NONE | Items Content}    => inside change_feed::read;
            ReadFeed               {Get    Items                   Always    | ReadOnly READ READ NONE NONE | Items Content}    => inside feeds::read;
            ReadItem               {Get    Item                    Always    | ReadOnly READ READ READ NONE | Items Content}    => inside items::read;
            ReplaceItem            {Put    Item                    Always    | Full     ALL  ALL  ALL  NONE | Items Content}    => inside items::replace;
            PatchItem              {Patch  Item                    Always    | Full     ALL  ALL  ALL  NONE | Items Growing}    => inside items::patch;
            DeleteItem             {Delete Item                    Always    | Full     ALL  ALL  ALL  NONE | Items Content}    => inside items::delete;
            DeletePartitionKey     {Post   PartitionKeyDelete      Always    | Full     ALL  ALL  NONE NONE | Items Content}    => inside items::delete_all;
            ListPartitionKeyRanges {Get    PartitionKeyRanges      Always    | ReadOnly READ READ READ READ | Other Content}    => now    pkranges::list;

            QueryConflicts         {Post   Conflicts               Query     | ReadOnly READ NONE NONE NONE | Other Content}    => now    conflicts::query;
            ListConflicts          {Get    Conflicts               Always    | ReadOnly READ NONE NONE NONE | Other Content}    => now    conflicts::list;
            ReadConflict           {Get    Conflict                Always    | ReadOnly READ NONE NONE NONE | Other Content}    => now    conflicts::point;
            DeleteConflict         {Delete Conflict                Always    | Full     ALL  NONE NONE NONE | Other Content}    => now    conflicts::point;

            // All users of a container run the same scripts: only a token for the whole container shows or changes them, and one for a script
            // executes or reads it but never replaces it. A script's text belongs to no partition key.
            QueryScripts           {Post   Scripts(_)              Query     | ReadOnly READ NONE NONE NONE | Other Content}    => later  scripts::query;
            CreateScript           {Post   Scripts(_)              Always    | Full     ALL  NONE NONE NONE | Other Content}    => later  scripts::create;
            ListScripts            {Get    Scripts(_)              Always    | ReadOnly READ NONE NONE NONE | Other Content}    => later  scripts::list;
            ExecuteProcedure       {Post   Script(StoredProcedure) Always    | Full     ALL  ALL  NONE ALL  | Items Growing}    => inside scripts::execute;
            ReadScript             {Get    Script(_)               Always    | ReadOnly READ NONE NONE READ | Other Content}    => now    scripts::read;
            ReplaceScript          {Put    Script(_)               Always    | Full     ALL  NONE NONE NONE | Other Content}    => later  scripts::replace;
            DeleteScript           {Delete Script(_)               Always    | Full     ALL  NONE NONE NONE | Other Content}    => later  scripts::delete;

            QueryOffers            {Post   Offers                  Query     | ReadOnly NONE NONE NONE NONE | Other Content}    => later  offers::query;
            ListOffers             {Get    Offers                  Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => later  offers::list;
            ReadOffer              {Get    Offer                   Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => now    offers::read;
            ReplaceOffer           {Put    Offer                   Always    | Full     NONE NONE NONE NONE | Other Definition} => later  offers::replace;

            QueryEncryptionKeys    {Post   EncryptionKeys          Query     | ReadOnly NONE NONE NONE NONE | Other Content}    => later  encryption_keys::query;
            CreateEncryptionKey    {Post   EncryptionKeys          Always    | Full     NONE NONE NONE NONE | Other Definition} => later  encryption_keys::create;
            ListEncryptionKeys     {Get    EncryptionKeys          Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => later  encryption_keys::list;
            ReadEncryptionKey      {Get    EncryptionKey           Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => now    encryption_keys::read;
            ReplaceEncryptionKey   {Put    EncryptionKey           Always    | Full     NONE NONE NONE NONE | Other Definition} => later  encryption_keys::replace;

            QueryUsers             {Post   Users                   Query     | ReadOnly NONE NONE NONE NONE | Other Content}    => later  users::query;
            UpsertUser             {Post   Users                   Upsert    | Full     NONE NONE NONE NONE | Other Definition} => later  users::upsert;
            CreateUser             {Post   Users                   Always    | Full     NONE NONE NONE NONE | Other Definition} => later  users::create;
            ListUsers              {Get    Users                   Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => later  users::list;
            ReadUser               {Get    User                    Always    | ReadOnly NONE NONE NONE NONE | Other Content}    => now    users::read;
            ReplaceUser            {Put    User                    Always    | Full     NONE NONE NONE NONE | Other Definition} => later  users::replace;
            DeleteUser             {Delete User                    Always    | Full     NONE NONE NONE NONE | Other Content}    => later  users::delete;

            // The response to reading a permission contains a token, which may have more rights than a read-only key.
            QueryPermissions       {Post   Permissions             Query     | Full     NONE NONE NONE NONE | Other Content}    => later  permissions::query;
            UpsertPermission       {Post   Permissions             Upsert    | Full     NONE NONE NONE NONE | Other Definition} => later  permissions::upsert;
            CreatePermission       {Post   Permissions             Always    | Full     NONE NONE NONE NONE | Other Definition} => later  permissions::create;
            ListPermissions        {Get    Permissions             Always    | Full     NONE NONE NONE NONE | Other Content}    => later  permissions::list;
            ReadPermission         {Get    Permission              Always    | Full     NONE NONE NONE NONE | Other Content}    => now    permissions::read;
            ReplacePermission      {Put    Permission              Always    | Full     NONE NONE NONE NONE | Other Definition} => later  permissions::replace;
            DeletePermission       {Delete Permission              Always    | Full     NONE NONE NONE NONE | Other Content}    => later  permissions::delete;
        }
    };
}

pub(crate) use operations;
