/**
 * Settings for tool search, and the checks that supplement the schema.
 *
 * The schema has already checked the form of the settings. Decimal numbers are within their ranges, `compat` has a
 * service and a model, and header names are valid. This file performs the checks that require the environment or a URL
 * parser.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer.
 */
import { addressViolation, isHeaderValue, type Optimizer, timerMs } from '../../../../schemas/index.ts'
import { Secret } from '../../../observe/index.ts'
import { vmcpEnvironment } from '../../../config/index.ts'

export interface SearchSettings {
  /** Maximum number of tools in a response. */
  readonly maxTools: number
  /** Weight of semantic search. 0 means keywords only, and 1 means semantic search only. Always 0 without a service. */
  readonly semanticRatio: number
  /** Maximum cosine distance of a semantic result, from 0 to 2. */
  readonly maxDistance: number
  /** Settings for the embedding service. Undefined if semantic search is disabled. */
  readonly service: ServiceSettings | undefined
}

export interface ServiceSettings {
  readonly protocol: 'tei' | 'compat'
  /** Base URL without a trailing slash. */
  readonly url: string
  /** Name of the model. Empty for `tei`, which serves a single model. */
  readonly model: string
  readonly headers: Readonly<Record<string, string>>
  /** Key that is sent as a bearer token to a `compat` service. */
  readonly apiKey: Secret | undefined
  /** Timeout for a request, and the maximum time for which a search waits. */
  readonly timeoutMs: number
}

type Environment = Readonly<Record<string, string | undefined>>

export function searchSettings(config: Optimizer, env: Environment): SearchSettings {
  const ratio = Number(config.hybridSearchSemanticRatio)
  const url = config.embeddingService
  const needed = url !== undefined && url !== '' && ratio > 0
  return {
    maxTools: config.maxToolsToReturn,
    semanticRatio: needed ? ratio : 0,
    maxDistance: Number(config.semanticDistanceThreshold),
    service: needed ? serviceSettings(config, url, env) : undefined,
  }
}

function serviceSettings(config: Optimizer, url: string, env: Environment): ServiceSettings {
  // `openai` is an alias for `compat`.
  const compat = config.embeddingProvider !== 'tei'
  const apiKey = env[vmcpEnvironment.embeddingApiKey]
  return {
    protocol: compat ? 'compat' : 'tei',
    url: url.replace(/\/+$/, ''),
    model: compat ? (config.embeddingModel ?? '') : '',
    headers: compat ? (config.embeddingHeaders ?? {}) : {},
    apiKey: compat && apiKey !== undefined && apiKey !== '' ? new Secret(apiKey) : undefined,
    timeoutMs: timerMs(config.embeddingServiceTimeout),
  }
}

/** Returns the errors in these settings. Each error contains the field's path. */
export function optimizerViolations(config: Optimizer | undefined, env: Environment): string[] {
  if (!config) return []
  const { embeddingService: url, embeddingProvider } = config
  const problems = url === undefined || url === '' ? [] : urlViolations(url)
  const key = env[vmcpEnvironment.embeddingApiKey] ?? ''
  if (embeddingProvider !== 'tei' && !isHeaderValue(key))
    problems.push(`${vmcpEnvironment.embeddingApiKey}: contains characters that are not allowed in a header`)
  return problems
}

function urlViolations(url: string): string[] {
  const path = 'optimizer.embeddingService'
  const violation = addressViolation(url, 'any')
  if (!URL.canParse(url)) return [`${path}: is not a URL`]
  const { username, password, search, hash } = new URL(url)
  const problems: string[] = []
  if (username !== '' || password !== '')
    problems.push(`${path}: must not contain credentials; use ${vmcpEnvironment.embeddingApiKey}`)
  else if (violation !== undefined) problems.push(`${path}: ${violation}`)
  if (search !== '' || hash !== '') problems.push(`${path}: must be a base URL without query or fragment`)
  return problems
}
