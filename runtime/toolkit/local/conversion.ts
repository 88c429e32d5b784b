/** Prepares converted servers for a local session. */
import { fieldsOf } from '../../../schemas/index.ts'
import type { Conversion } from '../clients/index.ts'
import type { LocalObject } from '../manifests/objects.ts'

/** Returns the objects to declare. Health checks run often, so that the user sees changes within seconds. */
export function documentsOf({ members, entrance, secrets }: Conversion): LocalObject[] {
  const documents = [...entrance, ...members, ...secrets.manifests] as unknown as LocalObject[]
  return documents.map((document) =>
    document.kind === 'VirtualMCPServer' ? withFastHealthChecks(document) : document,
  )
}

function withFastHealthChecks(server: LocalObject): LocalObject {
  const config = fieldsOf(server.spec?.['config'])
  const operational = fieldsOf(config['operational'])
  const failureHandling = {
    ...fieldsOf(operational['failureHandling']),
    healthCheckInterval: '3s',
    healthCheckTimeout: '2s',
    unhealthyThreshold: 2,
  }
  return {
    ...server,
    spec: { ...server.spec, config: { ...config, operational: { ...operational, failureHandling } } },
  }
}
