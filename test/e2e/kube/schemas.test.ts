/**
 * Checks that a real API server and the validators agree on every document of the tables. The API server must also
 * accept the CRDs, so they are structural and their rules are within the cost limits.
 */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import t from 'tap'
import { kindOf } from '../../../schemas/index.ts'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { violationsOf } from '../../unit/schemas/tables/check.ts'
import { allTables } from '../../unit/schemas/tables/index.ts'
import { statusTables } from '../../unit/schemas/tables/status.ts'
import {
  absent,
  type Doc,
  type Json,
  type Row,
  type Table,
  valueAt,
  withValue,
} from '../../unit/schemas/tables/table.ts'

const crds = join(import.meta.dirname, '../../../manifests/crds')

interface Verdict {
  readonly accepted: boolean
  readonly text: string
  readonly object: unknown
}

/** Sends a document to the API server without storing it. */
type Ask = (doc: Doc) => Promise<Verdict>

await t.test(
  'API server: agrees with the validators on every row of the tables',
  { skip: kubeMissing(), timeout: 300_000 },
  async (t) => {
    const server = await startKubeApiserver(t)
    server.must(['apply', '--server-side', '-f', crds])
    server.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
    const agent = new Agent({ keepAlive: true, maxSockets: 4, rejectUnauthorized: false })
    t.teardown(() => agent.destroy())
    const ask = requester(server, agent)
    for (const table of allTables) await t.test(table.name, (t) => compare(t, table, ask))
    for (const table of statusTables) {
      const { status: _, ...base } = table.base
      server.must(['create', '-f', '-'], JSON.stringify(base))
      await t.test(table.name, (t) => compare(t, table, ask))
      server.must(['delete', '-f', '-'], JSON.stringify(base))
    }
  },
)

async function compare(t: import('tap').Test, table: Table, ask: Ask): Promise<void> {
  const documents = table.rows.flatMap((row) => documentsOf(table, row))
  const verdicts = await Promise.all(documents.map(({ doc }) => ask(doc)))
  for (const [index, { doc, title, row }] of documents.entries()) {
    const verdict = verdicts[index]
    const here = violationsOf(doc)
    if (verdict?.accepted !== (here.length === 0)) t.fail(title, { here, there: verdict?.text })
    const filled = row.default !== undefined && valueAt(doc, row.at) === undefined
    if (filled && verdict?.accepted) t.same(valueAt(verdict.object, row.at), row.default, `${title}: default`)
  }
  t.pass(`${documents.length} documents`)
}

interface Case {
  readonly doc: Doc
  readonly title: string
  readonly row: Row
}

function documentsOf(table: Table, row: Row): readonly Case[] {
  const item = row.at.endsWith(']') && !row.at.endsWith('"]')
  const values: (Json | typeof absent)[] = [...(row.good ?? []), ...(row.bad ?? [])]
  if (!item) values.push(absent)
  return values.map((value) => ({
    doc: withValue(table.base, row.at, value),
    title: `${row.at} = ${value === absent ? 'absent' : JSON.stringify(value).slice(0, 60)}`,
    row,
  }))
}

function requester(server: KubeApiserver, agent: Agent): Ask {
  const token = tokenOf(server.kubeconfig)
  return (doc) =>
    new Promise((resolve, reject) => {
      const status = 'status' in doc
      const body = JSON.stringify(status ? { status: doc['status'] } : doc)
      const call = request(
        `${server.url}${pathOf(doc, status)}?dryRun=All&fieldValidation=Strict`,
        {
          agent,
          method: status ? 'PATCH' : 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': status ? 'application/merge-patch+json' : 'application/json',
          },
        },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('end', () => {
            const object: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
            const code = response.statusCode ?? 0
            if (code === 200 || code === 201 || code === 400 || code === 422) {
              resolve({ accepted: code < 300, text: String(valueAt(object, 'message')), object })
            } else reject(new Error(`the API server answered ${code}: ${String(valueAt(object, 'message'))}`))
          })
        },
      )
      call.on('error', reject)
      call.end(body)
    })
}

function pathOf(doc: Doc, status: boolean): string {
  const kind = kindOf(typeof doc['kind'] === 'string' ? doc['kind'] : '')
  const list = `/apis/gatehouse.dev/v1beta1/namespaces/default/${kind?.plural ?? ''}`
  return status ? `${list}/example/status` : list
}

function tokenOf(kubeconfig: string): string {
  const config: unknown = JSON.parse(readFileSync(kubeconfig, 'utf8'))
  return String(valueAt(config, 'users[0].user.token'))
}
