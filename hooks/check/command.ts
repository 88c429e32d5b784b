/**
 * The `check` command of the hooks program, which `helm test` runs in a pod: does this installation answer?
 *
 *   1. The hooks server is ready, behind its Service, with the certificate of its Secret.
 *   2. The API server asks the webhook: a good object is admitted, a wrong one refused. Both are dry runs; nothing is stored.
 *
 * Prints a line for each step; exit code 1 when one has not succeeded in time.
 */
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { GatehouseError, invalidConfig, parseDuration } from '../../schemas/index.ts'
import type { ApiServer } from '../base/api-server.ts'
import { assertAdmission } from './admission.ts'

interface Flags {
  readonly namespace: string
  readonly service: string
  readonly caFile: string
  readonly timeout: number
  readonly kubeconfig?: string
}

const betweenMs = 1000
const requestTimeoutMs = 10_000

/** Adds `check` to the hooks program. `report` gets a line for each step that has succeeded. */
export function addCheckCommand(program: Command, report: (line: string) => void = printLine): void {
  program
    .command('check')
    .description('ask the hooks server and the API server whether this installation answers')
    .requiredOption('--namespace <name>', 'namespace of the installation')
    .requiredOption('--service <name>', 'Service in front of the hooks server')
    .requiredOption('--ca-file <file>', 'authority of its certificate, PEM')
    .option('--timeout <duration>', 'how long to try, such as 60s', parseDuration, 60_000)
    .option('--kubeconfig <file>', 'how to reach the cluster (default: the pod, then the usual places)')
    .action(async (flags: Flags) => {
      const until = Date.now() + flags.timeout
      const url = `https://${flags.service}.${flags.namespace}.svc/readyz`
      await tried(until, async () => assertReady(url, await readFile(flags.caFile)))
      report(`${url} says that the hooks server is ready`)
      const api = await connect(flags.kubeconfig)
      await tried(until, () => assertAdmission(api, flags.namespace))
      report('the API server admits a good object and refuses a wrong one, as the webhook tells it')
    })
}

/** Tries again until it succeeds or time is over; throws what was wrong at last. */
async function tried(until: number, step: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await step()
    } catch (error) {
      if (Date.now() + betweenMs > until) throw error
      await pause(betweenMs)
    }
  }
}

async function connect(kubeconfig: string | undefined): Promise<ApiServer> {
  const { KubeConfig, apiServer } = await import('../base/api-server.ts')
  const config = new KubeConfig()
  try {
    if (kubeconfig === undefined) config.loadFromDefault()
    else config.loadFromFile(kubeconfig)
  } catch (cause) {
    throw invalidConfig('the Kubernetes configuration cannot be read', cause)
  }
  return apiServer(config)
}

async function assertReady(url: string, ca: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  request(url, { ca, signal: AbortSignal.timeout(requestTimeoutMs) }, (response) => {
    text(response).then((body) => {
      resolve(response.statusCode === 200 ? '' : `${response.statusCode}: ${body.slice(0, 200)}`)
    }, reject)
  })
    .once('error', reject)
    .end()
  const refusal = await promise.catch((error: unknown) => String(error))
  if (refusal !== '') throw new GatehouseError('INTERNAL', { detail: `${url}: ${refusal}` })
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`)
}
