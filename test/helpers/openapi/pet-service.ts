/** A real REST service with its OpenAPI document: a small store of pets. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Loopback, type PeerResponse, type SeenRequest, startLoopback } from '../loopback.ts'

const pet = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, name: { type: 'string' }, tag: { type: 'string' } },
}
const json = (schema: object) => ({ content: { 'application/json': { schema } } })
const petId = { name: 'petId', in: 'path', required: true, schema: { type: 'integer' } }

/** The document. `more` adds paths. */
export function petDocument(more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    openapi: '3.0.3',
    info: { title: 'Pets', version: '1' },
    servers: [{ url: 'http://169.254.169.254/never' }],
    paths: {
      '/pets': {
        get: {
          operationId: 'listPets',
          summary: 'List the pets',
          parameters: [
            { name: 'limit', in: 'query', schema: { type: 'integer' } },
            { name: 'X-Trace-Label', in: 'header', schema: { type: 'string' } },
          ],
          responses: { 200: { description: 'ok', ...json({ type: 'array', items: pet }) } },
        },
        post: {
          operationId: 'createPet',
          requestBody: {
            required: true,
            ...json({
              type: 'object',
              required: ['name'],
              properties: { name: { type: 'string' }, tag: { type: 'string' } },
            }),
          },
          responses: { 201: { description: 'created', ...json(pet) } },
        },
      },
      '/pets/{petId}': {
        parameters: [petId],
        get: { operationId: 'getPet', responses: { 200: { description: 'ok', ...json(pet) } } },
        delete: { operationId: 'deletePet', responses: { 204: { description: 'gone' } } },
      },
      '/pets/{petId}/photo': {
        put: {
          operationId: 'uploadPhoto',
          parameters: [petId],
          requestBody: { content: { 'multipart/form-data': { schema: { type: 'object' } } } },
          responses: { 200: { description: 'ok' } },
        },
      },
      ...more,
    },
  }
}

export interface PetService extends Loopback {
  /** Answers requests instead of the store. Returns undefined to let the store answer. */
  answer: ((request: SeenRequest) => PeerResponse | Promise<PeerResponse> | undefined) | undefined
}

/** Starts the service. The base URL is `url`. */
export async function startPetService(): Promise<PetService> {
  const pets = new Map([[1, { id: 1, name: 'Rex' }]])
  const service: { answer: PetService['answer'] } = { answer: undefined }
  const loopback = await startLoopback((request) => service.answer?.(request) ?? serve(pets, request))
  return Object.assign(service, loopback, { url: `${new URL(loopback.url).origin}/api` })
}

function serve(
  pets: Map<number, { id: number; name: string }>,
  { method, path, body }: SeenRequest,
): PeerResponse {
  const found = pets.get(Number(/^\/api\/pets\/(\d+)$/.exec(path)?.[1]))
  if (method === 'HEAD') return {}
  if (path === '/api/pets' && method === 'GET') return { body: [...pets.values()] }
  if (path === '/api/pets' && method === 'POST') {
    const created = { ...JSON.parse(body), id: pets.size + 1 }
    pets.set(created.id, created)
    return { status: 201, body: created }
  }
  if (!found) return { status: 404, body: { error: 'no such pet' } }
  if (method !== 'DELETE') return { body: found }
  pets.delete(found.id)
  return { status: 204 }
}

export interface DocumentFile {
  readonly path: string
  write(document: unknown): void
  remove(): void
}

/** Writes the document to a file in a temporary folder. */
export function documentFile(document: unknown = petDocument()): DocumentFile {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-openapi-'))
  const path = join(folder, 'openapi.json')
  const write = (content: unknown): void =>
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  write(document)
  return { path, write, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
