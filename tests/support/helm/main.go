// Renders a chart by Helm's own engine: `render CHART VALUES NAMESPACE`. What `helm template` does, without the rest of helm.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(arguments []string) error {
	if len(arguments) != 3 {
		return fmt.Errorf("usage: render CHART VALUES NAMESPACE")
	}
	chart, err := loader.Load(arguments[0])
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	given, err := chartutil.ReadValuesFile(arguments[1])
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "plinth", Namespace: arguments[2], Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	for _, crd := range chart.CRDObjects() {
		fmt.Printf("---\n%s\n", crd.File.Data)
	}
	names := []string{}
	for name := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n%s\n", rendered[name])
	}
	return nil
}
