/** The addresses of Services: given out by the API server of a test, and its node's own. */
const network = '10.0'
const bits = 16

export const serviceRange = `${network}.0.0/${bits}`
/** What kube-apiserver gives its own Service: the first address of the range. */
export const apiAddress = `${network}.0.1`
export const dnsAddress = `${network}.0.10`
/** With this on an interface, every address of the range is the node's. */
export const nodeAddress = `${apiAddress}/${bits}`
