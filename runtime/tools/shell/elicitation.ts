/**
 * Answers a server's elicitations. Prompts for each field on a terminal, and declines if there is no terminal.
 *
 * Prints the server's name in front of its message, because the server wrote the text. Input is echoed, because forms
 * must not ask for secrets (MCP 2025-11-25, elicitation). URLs are printed, not opened.
 */
import { createInterface, type Interface } from 'node:readline/promises'
import type { JsonObject } from '../../mcp/index.ts'
import { canPrompt } from '../../toolkit/terminal/ask.ts'
import { printError } from '../../toolkit/terminal/output.ts'
import { type Field, fieldsOf, valueFor } from './form.ts'
import { oneLine } from '../../toolkit/terminal/plain-text.ts'

const declined = '{"action":"decline"}'
const cancelled = '{"action":"cancel"}'

/** Returns the result of an `elicitation/create` request as JSON text. `server` is the target from the command line. */
export async function answerElicitation(params: JsonObject, server: string): Promise<string> {
  const message = oneLine(params.text('message') ?? '')
  if (!canPrompt()) {
    printError(`${server} asks: ${message}. Declined, because there is no terminal.`)
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
  printError(`Visit this URL to continue: ${oneLine(params.text('url') ?? '')}`)
  const reply = await terminal.question('Continue? [y/N] ', { signal })
  return /^y(es)?$/i.test(reply.trim()) ? '{"action":"accept"}' : declined
}

async function askForm(params: JsonObject, terminal: Interface, signal: AbortSignal): Promise<string> {
  const fields = fieldsOf(params.object('requestedSchema'))
  printError('An empty line uses the default or omits the field; "!" declines, Ctrl-C cancels.')
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
  const suffix = field.required ? '' : ', optional'
  for (;;) {
    const prompt = `${oneLine(field.title)} (${field.kind}${suffix})${byDefault}: `
    const text = (await terminal.question(prompt, { signal })).trim()
    if (text === '!') return declined
    const { value, problem } = valueFor(field, text)
    if (problem === undefined) return value
    printError(`  ${problem}`)
  }
}
