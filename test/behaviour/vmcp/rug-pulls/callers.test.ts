/**
 * Changes that only some callers see: one caller, clients with some capabilities, or one protocol era of the backend.
 */
import t from 'tap'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { distinctModes, listChanged } from '../../../helpers/vmcp/pinning.ts'
import { everyWay, inMode, textPull, told, toldToNoModel } from '../../../helpers/vmcp/rug-pull.ts'
import { ruggedClients } from '../../../helpers/vmcp/rug-pull-clients.ts'
import { lockFor, type OfferFor, startRugPull } from '../../../helpers/vmcp/rug-pull-rig.ts'

t.setTimeout(600_000)
t.jobs = 4

const { offer, pulled, drift, untouched, after } = textPull

/** Another tool for one team. */
const forVictims: OfferFor = ({ headers }) => (headers['x-team'] === 'victims' ? pulled : offer)

for (const mode of distinctModes) {
  t.test(`for one caller only: ${mode}`, { buffered: true }, async (t) => {
    const rig = await startRugPull(t, {
      offers: { files: forVictims },
      toolLocks: [lockFor('files', offer)],
      config: { pinning: inMode(mode), passthroughHeaders: ['x-team'] },
      headers: { 'x-team': 'others' },
    })
    const victims = await ruggedClients(rig.vmcp.url, [], { headers: { 'x-team': 'victims' } })
    for (const client of rig.clients) await everyWay(t, client, 'read', untouched)
    for (const client of victims) await everyWay(t, client, 'read', after(mode))
    for (const client of rig.clients) await everyWay(t, client, 'read', untouched)
    await told(t, rig, { mode, drift, expected: after(mode) })
    toldToNoModel(t, rig.answers)
  })

  t.test(`for clients that can be asked questions only: ${mode}`, { buffered: true }, async (t) => {
    const capable = new Set<string>()
    const rig = await startRugPull(t, {
      offers: { files: ({ headers }) => (capable.has(String(headers['mcp-session-id'])) ? pulled : offer) },
      toolLocks: [lockFor('files', offer)],
      config: { pinning: inMode(mode) },
      opened: (session, capabilities) => {
        if (capabilities['elicitation']) capable.add(session)
      },
    })
    const asked = await ruggedClients(rig.vmcp.url, [], { capabilities: { elicitation: {} } })
    for (const client of rig.clients) await everyWay(t, client, 'read', untouched)
    for (const client of asked) await everyWay(t, client, 'read', after(mode))
    for (const client of rig.clients) await everyWay(t, client, 'read', untouched)
    await told(t, rig, { mode, drift, expected: after(mode) })
  })

  t.test(`in one protocol era of the backend only: ${mode}`, { buffered: true }, async (t) => {
    const state = { stateless: false }
    const rig = await startRugPull(t, {
      offers: { files: offer },
      config: { pinning: inMode(mode) },
      before: (req, res, body) => state.stateless && answerStateless(req, res, body),
    })
    for (const client of rig.clients) await everyWay(t, client, 'read', untouched)
    const { files } = rig.backends
    files?.push(listChanged)
    state.stateless = true
    files?.forget()
    rig.reload({ backends: [{ name: 'files', url: `${files?.url}?era`, transport: 'streamable-http' }] })
    await rig.drifted(drift)
    for (const client of rig.clients) await everyWay(t, client, 'read', after(mode))
    await told(t, rig, { mode, drift, expected: after(mode) })
  })
}

/** The backend's responses in the stateless era. */
function answerStateless(req: IncomingMessage, res: ServerResponse, body: string): boolean {
  if (req.method !== 'POST') {
    res.writeHead(405).end()
    return true
  }
  const { id, method, params } = JSON.parse(body) as {
    id?: unknown
    method: string
    params?: { arguments?: unknown }
  }
  const results: Readonly<Record<string, string>> = {
    'server/discover':
      '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"2"},"resultType":"complete"}',
    'tools/list': `{"tools":[${pulled.tools.join()}],"resultType":"complete","ttlMs":0,"cacheScope":"public"}`,
    'tools/call': textResult(`reached:files ${JSON.stringify(params?.arguments)}`),
  }
  const result = results[method]
  if (result === undefined)
    json(res, `{"jsonrpc":"2.0","id":${JSON.stringify(id ?? 0)},"error":{"code":-32601,"message":"no"}}`)
  else json(res, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)
  return true
}
