//! Errors as MongoDB's clients know them: a number, its name, a text.

use bson::RawDocumentBuf;

/// Result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that is returned to the client.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Its number and name.
    pub code: Code,
    /// The text for the user.
    pub message: String,
    /// More fields of the error document, such as `keyPattern` and `keyValue` of a duplicate key, or `errInfo`.
    pub details: Option<Box<RawDocumentBuf>>,
}

impl Error {
    /// Returns an error without details.
    pub fn new(code: impl Into<Code>, message: impl Into<String>) -> Error {
        Error {
            code: code.into(),
            message: message.into(),
            details: None,
        }
    }

    /// Returns a `BadValue` error.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(Code::BAD_VALUE, message)
    }

    /// Returns an `InvalidBSON` error: bytes that are not well-formed.
    pub fn malformed(error: bson::error::Error) -> Error {
        Error::new(Code::INVALID_BSON, format!("invalid BSON: {error}"))
    }
}

impl From<bson::error::Error> for Error {
    fn from(error: bson::error::Error) -> Error {
        Error::malformed(error)
    }
}

/// The number of an error. Its name is that of the table, or `Location<n>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl From<i32> for Code {
    fn from(number: i32) -> Code {
        Code(number)
    }
}

impl Code {
    /// Returns `codeName` as clients get it: the name, or `Location<n>`.
    pub fn shown_name(self) -> String {
        self.name().map_or_else(|| format!("Location{}", self.0), str::to_owned)
    }
}

macro_rules! codes {
    ($($number:literal $constant:ident $name:literal,)*) => {
        impl Code {
            $(#[doc = $name] pub const $constant: Code = Code($number);)*

            /// Returns `codeName`; `None` for a number without a name, which is shown as `Location<n>`.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    1 INTERNAL_ERROR "InternalError",
    2 BAD_VALUE "BadValue",
    4 NO_SUCH_KEY "NoSuchKey",
    5 GRAPH_CONTAINS_CYCLE "GraphContainsCycle",
    6 HOST_UNREACHABLE "HostUnreachable",
    7 HOST_NOT_FOUND "HostNotFound",
    9 FAILED_TO_PARSE "FailedToParse",
    11 USER_NOT_FOUND "UserNotFound",
    12 UNSUPPORTED_FORMAT "UnsupportedFormat",
    13 UNAUTHORIZED "Unauthorized",
    14 TYPE_MISMATCH "TypeMismatch",
    15 OVERFLOW "Overflow",
    16 INVALID_LENGTH "InvalidLength",
    17 PROTOCOL_ERROR "ProtocolError",
    18 AUTHENTICATION_FAILED "AuthenticationFailed",
    20 ILLEGAL_OPERATION "IllegalOperation",
    22 INVALID_BSON "InvalidBSON",
    23 ALREADY_INITIALIZED "AlreadyInitialized",
    26 NAMESPACE_NOT_FOUND "NamespaceNotFound",
    27 INDEX_NOT_FOUND "IndexNotFound",
    28 PATH_NOT_VIABLE "PathNotViable",
    31 ROLE_NOT_FOUND "RoleNotFound",
    34 CANNOT_BACKFILL_ARRAY "CannotBackfillArray",
    40 CONFLICTING_UPDATE_OPERATORS "ConflictingUpdateOperators",
    43 CURSOR_NOT_FOUND "CursorNotFound",
    47 NO_MATCHING_DOCUMENT "NoMatchingDocument",
    48 NAMESPACE_EXISTS "NamespaceExists",
    50 MAX_TIME_MS_EXPIRED "MaxTimeMSExpired",
    52 DOLLAR_PREFIXED_FIELD_NAME "DollarPrefixedFieldName",
    53 INVALID_ID_FIELD "InvalidIdField",
    54 NOT_SINGLE_VALUE_FIELD "NotSingleValueField",
    56 EMPTY_FIELD_NAME "EmptyFieldName",
    57 DOTTED_FIELD_NAME "DottedFieldName",
    59 COMMAND_NOT_FOUND "CommandNotFound",
    61 SHARD_KEY_NOT_FOUND "ShardKeyNotFound",
    64 WRITE_CONCERN_TIMEOUT "WriteConcernTimeout",
    66 IMMUTABLE_FIELD "ImmutableField",
    67 CANNOT_CREATE_INDEX "CannotCreateIndex",
    68 INDEX_ALREADY_EXISTS "IndexAlreadyExists",
    72 INVALID_OPTIONS "InvalidOptions",
    73 INVALID_NAMESPACE "InvalidNamespace",
    76 NO_REPLICATION_ENABLED "NoReplicationEnabled",
    79 UNKNOWN_REPL_WRITE_CONCERN "UnknownReplWriteConcern",
    85 INDEX_OPTIONS_CONFLICT "IndexOptionsConflict",
    86 INDEX_KEY_SPECS_CONFLICT "IndexKeySpecsConflict",
    89 NETWORK_TIMEOUT "NetworkTimeout",
    91 SHUTDOWN_IN_PROGRESS "ShutdownInProgress",
    96 OPERATION_FAILED "OperationFailed",
    100 UNSATISFIABLE_WRITE_CONCERN "UnsatisfiableWriteConcern",
    111 NOT_EXACT_VALUE_FIELD "NotExactValueField",
    112 WRITE_CONFLICT "WriteConflict",
    115 COMMAND_NOT_SUPPORTED "CommandNotSupported",
    117 CONFLICTING_OPERATION_IN_PROGRESS "ConflictingOperationInProgress",
    121 DOCUMENT_VALIDATION_FAILURE "DocumentValidationFailure",
    125 COMMAND_FAILED "CommandFailed",
    134 READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET "ReadConcernMajorityNotAvailableYet",
    136 CAPPED_POSITION_LOST "CappedPositionLost",
    140 NO_SUCH_SESSION "NoSuchSession",
    146 EXCEEDED_MEMORY_LIMIT "ExceededMemoryLimit",
    159 DURATION_OVERFLOW "DurationOverflow",
    161 INCOMPATIBLE_COLLATION_VERSION "IncompatibleCollationVersion",
    165 VIEW_DEPTH_LIMIT_EXCEEDED "ViewDepthLimitExceeded",
    166 COMMAND_NOT_SUPPORTED_ON_VIEW "CommandNotSupportedOnView",
    167 OPTION_NOT_SUPPORTED_ON_VIEW "OptionNotSupportedOnView",
    168 INVALID_PIPELINE_OPERATOR "InvalidPipelineOperator",
    171 CANNOT_INDEX_PARALLEL_ARRAYS "CannotIndexParallelArrays",
    175 QUERY_PLAN_KILLED "QueryPlanKilled",
    181 AMBIGUOUS_INDEX_KEY_PATTERN "AmbiguousIndexKeyPattern",
    182 INVALID_VIEW_DEFINITION "InvalidViewDefinition",
    184 CLIENT_METADATA_APP_NAME_TOO_LARGE "ClientMetadataAppNameTooLarge",
    185 CLIENT_METADATA_DOCUMENT_TOO_LARGE "ClientMetadataDocumentTooLarge",
    186 CLIENT_METADATA_CANNOT_BE_MUTATED "ClientMetadataCannotBeMutated",
    189 PRIMARY_STEPPED_DOWN "PrimarySteppedDown",
    197 INVALID_INDEX_SPECIFICATION_OPTION "InvalidIndexSpecificationOption",
    201 CANNOT_BUILD_INDEX_KEYS "CannotBuildIndexKeys",
    211 KEY_NOT_FOUND "KeyNotFound",
    217 INCOMPLETE_TRANSACTION_HISTORY "IncompleteTransactionHistory",
    222 CLOSE_CHANGE_STREAM "CloseChangeStream",
    223 ILLEGAL_OP_MSG_FLAG "IllegalOpMsgFlag",
    224 QUERY_FEATURE_NOT_ALLOWED "QueryFeatureNotAllowed",
    225 TRANSACTION_TOO_OLD "TransactionTooOld",
    232 MAX_SUB_PIPELINE_DEPTH_EXCEEDED "MaxSubPipelineDepthExceeded",
    237 CURSOR_KILLED "CursorKilled",
    238 NOT_IMPLEMENTED "NotImplemented",
    239 SNAPSHOT_TOO_OLD "SnapshotTooOld",
    241 CONVERSION_FAILURE "ConversionFailure",
    244 TRANSACTION_ABORTED "TransactionAborted",
    246 SNAPSHOT_UNAVAILABLE "SnapshotUnavailable",
    251 NO_SUCH_TRANSACTION "NoSuchTransaction",
    256 TRANSACTION_COMMITTED "TransactionCommitted",
    257 TRANSACTION_TOO_LARGE "TransactionTooLarge",
    260 INVALID_RESUME_TOKEN "InvalidResumeToken",
    261 TOO_MANY_LOGICAL_SESSIONS "TooManyLogicalSessions",
    262 EXCEEDED_TIME_LIMIT "ExceededTimeLimit",
    263 OPERATION_NOT_SUPPORTED_IN_TRANSACTION "OperationNotSupportedInTransaction",
    280 CHANGE_STREAM_FATAL_ERROR "ChangeStreamFatalError",
    286 CHANGE_STREAM_HISTORY_LOST "ChangeStreamHistoryLost",
    288 CHECKSUM_MISMATCH "ChecksumMismatch",
    292 QUERY_EXCEEDED_MEMORY_LIMIT "QueryExceededMemoryLimitNoDiskUseAllowed",
    303 FEATURE_NOT_SUPPORTED "FeatureNotSupported",
    322 API_VERSION_ERROR "APIVersionError",
    323 API_STRICT_ERROR "APIStrictError",
    324 API_DEPRECATION_ERROR "APIDeprecationError",
    334 MECHANISM_UNAVAILABLE "MechanismUnavailable",
    352 UNSUPPORTED_OP_QUERY_COMMAND "UnsupportedOpQueryCommand",
    359 CANNOT_CONVERT_INDEX_TO_UNIQUE "CannotConvertIndexToUnique",
    9001 SOCKET_EXCEPTION "SocketException",
    10107 NOT_WRITABLE_PRIMARY "NotWritablePrimary",
    10334 BSON_OBJECT_TOO_LARGE "BSONObjectTooLarge",
    11000 DUPLICATE_KEY "DuplicateKey",
    11600 INTERRUPTED_AT_SHUTDOWN "InterruptedAtShutdown",
    11601 INTERRUPTED "Interrupted",
    11602 INTERRUPTED_DUE_TO_REPL_STATE_CHANGE "InterruptedDueToReplStateChange",
    13435 NOT_PRIMARY_NO_SECONDARY_OK "NotPrimaryNoSecondaryOk",
    13436 NOT_PRIMARY_OR_SECONDARY "NotPrimaryOrSecondary",
    16500 TOO_MANY_REQUESTS "TooManyRequests",
}
