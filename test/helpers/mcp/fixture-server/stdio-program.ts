/**
 * The fixture backend as a program on standard input and output. Its argument says which era it speaks: `session` (SDK 1),
 * `stateless` (SDK 2, which refuses the other) or `both` (SDK 2). What its state tells goes to standard error.
 */
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { makeServer as makeSessionServer } from './session-server.ts'
import { FixtureState } from './state.ts'
import { makeServer as makeStatelessServer } from './stateless-server.ts'

const era = process.argv[2] ?? 'session'
const state = new FixtureState()
state.events.on('waiting', () => console.error('fixture: waiting'))
state.events.on('cancelled', () => console.error('fixture: cancelled'))

if (era === 'session') await makeSessionServer(state).connect(new StdioServerTransport())
else serveStdio(() => announced(), { legacy: era === 'both' ? 'serve' : 'reject' })

/** A server that says itself what has changed: over HTTP the handler does. */
function announced() {
  const server = makeStatelessServer(state)
  const quiet = () => undefined
  // Asked for in sessions only; who did not subscribe here is told all the same.
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  state.events.on('tools', () => void server.sendToolListChanged().catch(quiet))
  state.events.on('prompts', () => void server.sendPromptListChanged().catch(quiet))
  state.events.on('updated', (uri) => void server.sendResourceUpdated({ uri }).catch(quiet))
  return server
}
