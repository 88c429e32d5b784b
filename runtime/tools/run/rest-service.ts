/** Runs a REST service with `gatehouse run`: `--openapi` contains its OpenAPI document, and `--base-url` its address. */
import { readFileSync } from 'node:fs'
import { fieldsOf, formatViolations, invalidConfig, type Violation } from '../../../schemas/index.ts'
import type { Conversion } from '../../toolkit/clients/index.ts'
import type { LocalObject } from '../../toolkit/manifests/objects.ts'

export interface RestServiceOptions {
  readonly openapi?: string
  readonly baseUrl?: string
  readonly operation: readonly string[]
}

type Member = Conversion['members'][number]

/** Text of the document. Undefined without `--openapi`. Throws INVALID_CONFIG if the file cannot be read. */
export function readOpenApiFile({ openapi, baseUrl }: RestServiceOptions): string | undefined {
  if ((openapi === undefined) !== (baseUrl === undefined))
    throw invalidConfig('--openapi and --base-url must be used together')
  if (openapi === undefined) return undefined
  try {
    return readFileSync(openapi, 'utf8')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error'
    throw invalidConfig(`--openapi: the file ${openapi} cannot be read (${code})`, cause)
  }
}

export interface RestService {
  readonly members: Conversion['members']
  /** The ConfigMap with the document. */
  readonly configMap: LocalObject
}

/**
 * Converts the server with the base URL from an MCPServerEntry to an MCPOpenAPIServer. Its name, headers and Secrets
 * stay the same. Throws INVALID_CONFIG if the result is invalid.
 */
export function withRestService(
  { members }: Pick<Conversion, 'members'>,
  document: string,
  { baseUrl = '', operation }: RestServiceOptions,
  violationsOf: (manifest: unknown) => readonly Violation[],
): RestService {
  const url = baseUrl.slice(baseUrl.search(/https?:\/\//i))
  const entry = members.find(({ spec }) => fieldsOf(spec)['remoteUrl'] === url)
  if (!entry) throw invalidConfig('--base-url: must be an http or https URL, or NAME=URL')
  const { remoteUrl: _, transport: __, ...shared } = fieldsOf(entry.spec)
  const { name } = entry.metadata
  const spec = {
    ...shared,
    baseUrl: url,
    allowPrivateEndpoint: true,
    document: { configMapRef: { name: `${name}-openapi`, key: 'openapi.yaml' } },
    ...(operation.length > 0 && {
      operations: { include: [{ methods: ['GET', 'HEAD'] }, { operationIds: operation }] },
    }),
  }
  const server = { ...entry, kind: 'MCPOpenAPIServer', spec } as unknown as Member
  const violations = violationsOf(server)
  if (violations.length > 0) throw invalidConfig(`--base-url: ${formatViolations(violations)}`)
  return {
    members: members.map((member) => (member === entry ? server : member)),
    configMap: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${name}-openapi` },
      data: { 'openapi.yaml': document },
    } as unknown as LocalObject,
  }
}
