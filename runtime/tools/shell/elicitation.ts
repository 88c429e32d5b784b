/**
 * Questions of a server to the user of a shell: field by field on a terminal, declined without one.
 *
 * What is asked and by whom is said first, because the server wrote the text. Secrets must not be asked for in a form
 * (MCP 2025-11-25, elicitation), so what is typed is shown. An address is shown and not opened.
 */
import { createInterface, type Interface } from 'node:readline/promises'
import type { JsonObject } from '../../mcp/index.ts'
import { canPrompt } from '../../toolkit/terminal/ask.ts'
import { printError } from '../../toolkit/terminal/output.ts'
import { type Field, fieldsOf, valueFor } from './form.ts'
import { oneLine } from '../../toolkit/terminal/plain-text.ts'

const declined = '{"action":"decline"}'
const cancelled = '{"action":"cancel"}'

/** The result of an `elicitation/create` as JSON text. `server` is the target as the user gave it. */
export async function answerElicitation(params: JsonObject, server: string): Promise<string> {
  const message = oneLine(params.text('message') ?? '')
  if (!canPrompt()) {
    printError(`${server} asks: ${message}. Declined: there is no terminal to ask on.`)
    return declined
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr, terminal: true })
  const stop = new AbortController()
  terminal.once('SIGINT', () => stop.abort())
  terminal.once('close', () => stop.abort())
  try {
    printError(`\n${server} asks: ${message}`)
    if (params.text('mode') === 'url') return await askToVisit(params, terminal, stop.signal)
    return await askForm(params, terminal, stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    return cancelled
  } finally {
    terminal.close()
  }
}

async function askToVisit(params: JsonObject, terminal: Interface, signal: AbortSignal): Promise<string> {
  printError(`It wants you to visit: ${oneLine(params.text('url') ?? '')}`)
  const reply = await terminal.question('Continue? [y/N] ', { signal })
  return /^y(es)?$/i.test(reply.trim()) ? '{"action":"accept"}' : declined
}

async function askForm(params: JsonObject, terminal: Interface, signal: AbortSignal): Promise<string> {
  const fields = fieldsOf(params.object('requestedSchema'))
  printError('An empty line takes the default or leaves the field out; "!" declines, Ctrl-C cancels.')
  const content: Record<string, unknown> = {}
  for (const field of fields) {
    const value = await askField(field, terminal, signal)
    if (value === declined) return declined
    if (value !== undefined) content[field.name] = value
  }
  if (fields.length === 0) {
    const reply = await terminal.question('Accept? [y/N] ', { signal })
    if (!/^y(es)?$/i.test(reply.trim())) return declined
  }
  return JSON.stringify({ action: 'accept', content })
}

async function askField(field: Field, terminal: Interface, signal: AbortSignal): Promise<unknown> {
  if (field.description !== undefined) printError(`  ${oneLine(field.description)}`)
  for (const { value, title } of field.options)
    printError(`    ${oneLine(value)}${title === undefined ? '' : `  ${oneLine(title)}`}`)
  const byDefault = field.byDefault === undefined ? '' : ` [${oneLine(JSON.stringify(field.byDefault))}]`
  const wanted = field.required ? '' : ', optional'
  for (;;) {
    const prompt = `${oneLine(field.title)} (${field.kind}${wanted})${byDefault}: `
    const text = (await terminal.question(prompt, { signal })).trim()
    if (text === '!') return declined
    const { value, problem } = valueFor(field, text)
    if (problem === undefined) return value
    printError(`  ${problem}`)
  }
}
