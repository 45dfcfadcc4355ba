// The definition of a container, as JSON.

import { useState } from "preact/hooks";
import { type Container, deleteContainer, type Place, replaceContainer } from "../../api/account";
import type { Client } from "../../api/client";
import { Editor } from "../../editor/editor";
import { wordsOf } from "../../state/session";
import { refresh } from "../../state/tree";
import { Problem } from "../../ui/notice";
import { ThroughputForm } from "./throughput";

interface Properties {
  client: Client;
  place: Place;
  container: Container;
  onChange: (container: Container) => void;
}

export function Settings({ client, place, container, onChange }: Properties) {
  const [text, setText] = useState(textOf(container));
  /** Of what the text was made from: the container may be read anew while it is edited. */
  const [etag, setEtag] = useState(container._etag);
  const [problem, setProblem] = useState<string | null>(null);
  const [isSaved, setSaved] = useState(false);
  const save = async (): Promise<void> => {
    try {
      const changed = await replaceContainer(client, place, JSON.parse(text), etag);
      setText(textOf(changed));
      setEtag(changed._etag);
      onChange(changed);
      setSaved(true);
      setProblem(null);
    } catch (error) {
      setSaved(false);
      setProblem(wordsOf(error));
    }
  };
  const remove = async (): Promise<void> => {
    if (!confirm(`Delete the container "${place.container}" with all its items?`)) return;
    try {
      await deleteContainer(client, place);
      location.hash = "#/";
      await refresh(client);
    } catch (error) {
      setProblem(wordsOf(error));
    }
  };
  return (
    <div class="settings">
      <ThroughputForm key={String(container["_rid"])} client={client} container={container} />
      <Editor
        language="json"
        label="Settings as JSON"
        text={text}
        onChange={(typed) => {
          setText(typed);
          setSaved(false);
        }}
        onRun={() => void save()}
      />
      <Problem text={problem} />
      <div class="tools">
        <button class="primary" onClick={() => void save()}>
          Save
        </button>
        {isSaved && <span role="status">Saved.</span>}
        <span class="space" />
        <button class="danger" onClick={() => void remove()}>
          Delete container
        </button>
      </div>
    </div>
  );
}

/** Without what the server adds. */
function textOf(container: Container): string {
  const { _rid, _self, _etag, _ts, _docs, _sprocs, _triggers, _udfs, _conflicts, ...rest } = container;
  return JSON.stringify(rest, null, 2);
}
