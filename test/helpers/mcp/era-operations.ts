/**
 * Operations of a client with a server, one by one. They are the same for every pair of protocol eras and any gateway
 * in between. The server is the fixture backend.
 */
import { once } from 'node:events'
import type { Test } from 'tap'
import type { FixtureState } from './fixture-server/state.ts'
import type { TestClient } from './clients.ts'

const watchedUri = 'test://watched-resource'

/** Actions of a test at the server, without the client. */
export interface Control {
  toggleTool(): Promise<void>
  togglePrompt(): Promise<void>
  /** Updates the watched resource. */
  update(): Promise<void>
  /** Resolves when the next call of `wait` begins, or is cancelled. */
  heard(what: 'waiting' | 'cancelled'): Promise<unknown>
}

export interface EraCell {
  readonly client: TestClient
  readonly control: Control
}

/** A fixture that runs in the process of the test. */
export function controlOf(state: FixtureState): Control {
  return {
    toggleTool: async () => state.toggleTool(),
    togglePrompt: async () => state.togglePrompt(),
    update: async () => state.update(watchedUri),
    heard: (what) => once(state.events, what),
  }
}

export const eraOperations: Readonly<Record<string, (t: Test, cell: EraCell) => Promise<void>>> = {
  async 'resources and templates'(t, { client }) {
    t.ok((await client.listResources()).includes('test://static-text'))
    t.same(await client.listTemplates(), ['test://template/{id}/data'])
    t.match(await client.readText('test://static-text'), 'static text resource')
    t.match(await client.readText('test://template/7/data'), '"id":"7"')
    await t.rejects(client.readText('test://no-such-resource'))
  },
  async prompts(t, { client }) {
    t.ok((await client.listPrompts()).includes('test_simple_prompt'))
    t.match(await client.promptText('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' }), "arg1='a'")
    await t.rejects(client.promptText('no_such_prompt'))
  },
  async completion(t, { client }) {
    const words = ['paris', 'park', 'party']
    t.same(await client.complete('test_prompt_with_arguments', 'arg1', 'par'), words)
    t.same(await client.completeTemplate('test://template/{id}/data', 'id', 'par'), words)
  },
  async progress(t, { client }) {
    const progress: number[] = []
    await client.callText(
      'test_tool_with_progress',
      {},
      { onprogress: (p) => void progress.push(p.progress) },
    )
    t.same(progress, [0, 50, 100])
  },
  async logging(t, { client }) {
    const all = ['Tool execution started', 'Tool processing data', 'Tool execution completed']
    t.same(await client.callForLogs('test_tool_with_logging', 'info'), all)
    t.same(await client.callForLogs('test_tool_with_logging', 'error'), [], 'below the requested level')
  },
  async cancellation(t, { client, control }) {
    const waiting = control.heard('waiting')
    const cancelled = control.heard('cancelled')
    const abort = new AbortController()
    const call = client.call('wait', {}, { signal: abort.signal })
    const refused = t.rejects(call)
    await waiting
    abort.abort(new Error('enough'))
    await refused
    await cancelled
    t.match(await client.callText('test_simple_text'), 'simple text', 'everything else still works')
  },
  async 'changed lists and updated resources'(t, { client, control }) {
    await client.listTools()
    await client.listPrompts()
    await client.listResources()
    const stop = await client.watch(watchedUri)
    await control.toggleTool()
    await client.heard('tools')
    t.ok((await client.listTools()).some(({ name }) => name === 'extra_tool'))
    await control.togglePrompt()
    await client.heard('prompts')
    t.ok((await client.listPrompts()).includes('extra_prompt'))
    await control.update()
    await client.heard(watchedUri)
    await stop()
  },
  async 'elicitation, by form and by URL'(t, { client }) {
    t.match(await client.callText('test_elicitation', { message: 'who?' }), 'ada@example.com')
    t.match(await client.callText('test_two_questions'), /ada.* .*ada/)
    t.equal(await client.callText('test_elicitation_url'), 'action=accept')
    t.equal(await client.callText('test_input_required_result_elicitation'), 'Hello, ada!')
    t.equal(await client.callText('test_input_required_result_request_state'), 'state-ok')
    t.equal(await client.callText('test_input_required_result_multi_round'), 'rounds-ok')
    t.equal(await client.promptText('test_input_required_result_prompt'), 'here', 'for a prompt')
    t.ok(client.asked.includes('elicitation/create'))
  },
  async sampling(t, { client }) {
    t.equal(await client.callText('test_sampling', { prompt: 'hi' }), 'LLM response: sampled text')
    t.equal(await client.callText('test_input_required_result_sampling'), 'sampled')
    t.ok(client.asked.includes('sampling/createMessage'))
  },
  async roots(t, { client }) {
    t.equal(await client.callText('test_roots'), 'file:///project')
    t.match(await client.callText('test_input_required_result_list_roots'), 'file:///project')
    t.ok(client.asked.includes('roots/list'))
  },
  async 'questions of all kinds at once'(t, { client }) {
    t.equal(await client.callText('test_input_required_result_multiple_inputs'), 'all-ok')
    t.same(client.asked.toSorted(), ['elicitation/create', 'roots/list', 'sampling/createMessage'])
  },
}
