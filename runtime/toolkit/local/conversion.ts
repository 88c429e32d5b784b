/** Prepares converted servers for a local session. */
import { fieldsOf } from '../../../schemas/index.ts'
import type { Conversion } from '../clients/index.ts'
import type { LocalObject } from '../manifests/objects.ts'

export interface LocalOptions {
  /** Timeout of requests to servers, as a duration. Undefined for the default. */
  readonly requestTimeout?: string
}

/** Returns the objects to declare. Health checks run often, so that the user sees changes within seconds. */
export function documentsOf(
  { members, entrance, secrets }: Conversion,
  options: LocalOptions = {},
): LocalObject[] {
  const documents = [...entrance, ...members, ...secrets.manifests] as unknown as LocalObject[]
  return documents.map((document) =>
    document.kind === 'VirtualMCPServer' ? withLocalSettings(document, options) : document,
  )
}

function withLocalSettings(server: LocalObject, { requestTimeout }: LocalOptions): LocalObject {
  const config = fieldsOf(server.spec?.['config'])
  const operational = fieldsOf(config['operational'])
  const failureHandling = {
    ...fieldsOf(operational['failureHandling']),
    healthCheckInterval: '3s',
    healthCheckTimeout: '2s',
    unhealthyThreshold: 2,
  }
  const timeouts = requestTimeout === undefined ? {} : { timeouts: { default: requestTimeout } }
  return {
    ...server,
    spec: {
      ...server.spec,
      config: { ...config, operational: { ...operational, ...timeouts, failureHandling } },
    },
  }
}
