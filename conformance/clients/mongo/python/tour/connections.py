"""Connections: topologies, encryption, compression, authentication."""

from pymongo.errors import ConfigurationError, OperationFailure, ServerSelectionTimeoutError

from checks import equal, holds, refused

SET_NAME = "globaldb"


def declare(tour):
    """Declares the checks of this topic."""

    @tour.check
    def clients_find_the_primary_of_the_replica_set(world):
        client = world.connect(replicaSet=SET_NAME)
        equal(client.admin.command("ping")["ok"], 1)
        holds(client.primary is not None, "there is no primary")

    @tour.check
    def clients_connect_directly(world):
        equal(world.connect(directConnection="true").admin.command("ping")["ok"], 1)

    @tour.check
    def another_name_of_the_replica_set_is_not_accepted(world):
        client = world.connect(replicaSet="other", serverSelectionTimeoutMS="1500")
        try:
            client.admin.command("ping")
        except (ServerSelectionTimeoutError, ConfigurationError):
            return
        raise AssertionError("the client took the server for another set's")

    @tour.check
    def connections_are_encrypted_on_the_same_port(world):
        client = world.connect(replicaSet=SET_NAME, tls="true", tlsCAFile=world.certificate)
        equal(client.admin.command("ping")["ok"], 1)

    @tour.check
    def connections_are_not_encrypted_unless_asked(world):
        equal(world.connect(replicaSet=SET_NAME, tls="false").admin.command("ping")["ok"], 1)

    @tour.check
    def messages_are_compressed_with_snappy(world):
        compressed(world, "snappy")

    @tour.check
    def messages_are_compressed_with_zlib(world):
        compressed(world, "zlib")

    @tour.check
    def messages_are_compressed_with_zstd(world):
        compressed(world, "zstd")

    @tour.check
    def scram_sha_256_authenticates(world):
        authenticated(world, "SCRAM-SHA-256")

    @tour.check
    def scram_sha_1_authenticates(world):
        authenticated(world, "SCRAM-SHA-1")

    @tour.check
    def a_wrong_password_is_refused(world):
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-1"):
            client = world.connect(password="d3Jvbmc=", authMechanism=mechanism, directConnection="true")
            refused(18, lambda: client.admin.command("listDatabases"))

    @tour.check
    def an_unknown_user_is_refused_as_a_wrong_password_is(world):
        client = world.connect(user="nobody", directConnection="true")
        refused(18, lambda: client.admin.command("listDatabases"))

    @tour.check
    def nothing_is_read_without_credentials(world):
        client = world.connect(credentials=False, directConnection="true")
        equal(client.admin.command("ping")["ok"], 1)
        refused(13, lambda: client[world.database_name]["c"].find_one())

    @tour.check
    def the_server_says_it_is_a_primary_of_version_7_0(world):
        hello = world.client.admin.command("hello")
        equal([hello["setName"], hello["isWritablePrimary"], hello["maxWireVersion"]], [SET_NAME, True, 21])
        equal(world.client.server_info()["versionArray"][:2], [7, 0])

    @tour.check
    def unknown_commands_and_options_are_refused(world):
        refused(59, lambda: world.database.command("frobnicate"))
        refused(40415, lambda: world.database.command({"find": "c", "frob": 1}))

    @tour.check
    def a_declared_api_version_is_accepted_and_others_are_refused(world):
        equal(world.database.command({"ping": 1, "apiVersion": "1"})["ok"], 1)
        refused(322, lambda: world.database.command({"ping": 1, "apiVersion": "2"}))


def compressed(world, compressor):
    """Sends and reads a message that is worth compressing."""
    client = world.connect(replicaSet=SET_NAME, compressors=compressor)
    collection = client[world.database_name]["compressed"]
    text = "compress me " * 5000
    collection.replace_one({"_id": compressor}, {"text": text}, upsert=True)
    equal(collection.find_one({"_id": compressor}), {"_id": compressor, "text": text})
    hello = client.admin.command({"hello": 1, "compression": [compressor, "frob"]})
    equal(hello.get("compression"), [compressor], "the compressors of hello")


def authenticated(world, mechanism):
    """Reads with an authentication mechanism."""
    client = world.connect(authMechanism=mechanism, replicaSet=SET_NAME)
    status = client.admin.command("connectionStatus")
    holds(status["authInfo"]["authenticatedUsers"], f"nobody is authenticated: {status}")
    try:
        client[world.database_name]["c"].find_one()
    except OperationFailure as error:
        raise AssertionError(f"reading with {mechanism}: {error}") from error
