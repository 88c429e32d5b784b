/** A virtual server in front of the pet service, with an SDK client. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Test } from 'tap'
import type { VmcpServer } from '../../../runtime/vmcp/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { bareNames, startTestVmcp } from '../vmcp/vmcp.ts'
import { type DocumentFile, documentFile, type PetService, startPetService } from './pet-service.ts'

export interface RestRig {
  readonly service: PetService
  readonly client: Client
  readonly vmcp: VmcpServer
  readonly file: DocumentFile
  /** The log so far. */
  readonly log: () => string
  readonly call: (name: string, args?: Record<string, unknown>) => ReturnType<Client['callTool']>
}

export interface RestRigOptions {
  /** Members of the backend's `openapi`. */
  readonly openapi?: object
  /** More members of the backend. */
  readonly backend?: object
  /** Top-level fields of the configuration. */
  readonly config?: object
  readonly document?: unknown
  readonly env?: Readonly<Record<string, string>>
  /** Headers of the client's requests. */
  readonly headers?: Readonly<Record<string, string>>
}

export async function startRestRig(t: Test, options: RestRigOptions = {}): Promise<RestRig> {
  const service = await startPetService()
  const file = documentFile(options.document)
  const backend = {
    url: service.url,
    transport: 'openapi' as const,
    openapi: {
      document: { path: file.path },
      operations: { include: [{ methods: ['GET', 'POST', 'PUT', 'DELETE'] }] },
      ...options.openapi,
    },
    ...options.backend,
  }
  const lines: string[] = []
  const vmcp = await startTestVmcp(
    { pets: backend },
    { aggregation: bareNames('pets'), ...options.config },
    {
      log: makeLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } }),
      ...(options.env && { env: options.env }),
    },
  )
  const client = new Client({ name: 'test', version: '1' })
  const requestInit = { headers: { ...options.headers } }
  await client.connect(new StreamableHTTPClientTransport(new URL(vmcp.url), { requestInit }))
  t.teardown(async () => {
    await client.close()
    await vmcp.close()
    await service.close()
    file.remove()
  })
  return {
    ...{ service, client, vmcp, file },
    log: () => lines.join(''),
    call: (name, args = {}) => client.callTool({ name, arguments: args }),
  }
}
