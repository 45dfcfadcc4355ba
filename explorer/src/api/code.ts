// A query as a program in the languages of the SDKs.

import type { Place } from "./account";

export interface Code {
  language: string;
  text: string;
}

/** `key`: as it is written in the programs, so that none has the key of the account in it. */
export function codeOf(place: Place, query: string, endpoint: string): Code[] {
  const [database, container, text] = [place.database, place.container, query].map((one) => JSON.stringify(one)) as [string, string, string];
  const at = JSON.stringify(`${endpoint}/`);
  return [
    {
      language: "Python",
      text: `from azure.cosmos import CosmosClient

client = CosmosClient(${at}, key)
container = client.get_database_client(${database}).get_container_client(${container})
for item in container.query_items(${text}, enable_cross_partition_query=True):
    print(item)
`,
    },
    {
      language: "JavaScript",
      text: `import { CosmosClient } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: ${at}, key });
const container = client.database(${database}).container(${container});
const { resources } = await container.items.query(${text}).fetchAll();
console.log(resources);
`,
    },
    {
      language: "C#",
      text: `using Microsoft.Azure.Cosmos;

// Trust the server's certificate: bolide trust
var client = new CosmosClient(${at}, key);
var container = client.GetContainer(${database}, ${container});
using var pages = container.GetItemQueryIterator<dynamic>(${text});
while (pages.HasMoreResults)
    foreach (var item in await pages.ReadNextAsync())
        Console.WriteLine(item);
`,
    },
    {
      language: "Java",
      text: `CosmosClient client = new CosmosClientBuilder().endpoint(${at}).key(key).buildClient();
CosmosContainer container = client.getDatabase(${database}).getContainer(${container});
container.queryItems(${text}, new CosmosQueryRequestOptions(), JsonNode.class).forEach(System.out::println);
`,
    },
    {
      language: "Go",
      text: `credential, _ := azcosmos.NewKeyCredential(key)
client, _ := azcosmos.NewClientWithKey(${at}, credential, nil)
container, _ := client.NewContainer(${database}, ${container})
pages := container.NewQueryItemsPager(${text}, azcosmos.NewPartitionKey(), nil)
for pages.More() {
	page, err := pages.NextPage(context.TODO())
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range page.Items {
		fmt.Println(string(item))
	}
}
`,
    },
  ];
}
